# Runs as root inside the new root file system: takes out what only the build
# needed, and everything that tells of the machine that it ran on.
rm -rf /root/.cache /root/.config /root/.local /var/cache/apt/* /var/lib/apt/lists/* /var/cache/debconf/*-old \
  /var/cache/ldconfig/aux-cache /var/log/* /var/lib/dpkg/*-old /etc/*- /etc/machine-id /etc/apt/apt.conf.d/99mmdebstrap \
  /usr/share/doc /usr/share/man /usr/share/info /usr/share/locale
rm -f /etc/resolv.conf /etc/hosts /etc/hostname
find /tmp /var/tmp /run -mindepth 1 -delete

# Files of an image get a fixed modification time, which would make compiled files
# that remember the time of their source look old: every start of Ray would then
# compile anew and, as it may not write here, throw the result away.
find /usr/lib/python3* /usr/local/lib/python3* -depth -name __pycache__ -exec rm -rf {} +
python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash /usr/lib/python3* /usr/local/lib/python3* ||
  echo 'some files do not compile with this Python, as their authors intended' >&2

# No index is reachable at run time: say so at once instead of after time-outs.
printf '%s\n' '[global]' 'no-index = true' 'find-links = /opt/wheelhouse' 'disable-pip-version-check = true' >/etc/pip.conf
