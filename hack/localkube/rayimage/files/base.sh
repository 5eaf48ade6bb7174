# Runs as root inside the new root file system: what Debian's packages leave to do.

# The image is a throw-away environment: pip may install into the system's Python,
# as it may in the upstream Ray images.
rm -f /usr/lib/python3*/EXTERNALLY-MANAGED
ln -sf python3 /usr/bin/python

# The upstream images run as this user and group; group 100 is Debian's "users".
useradd --uid 1000 --gid 100 --home-dir /home/ray --create-home --shell /bin/bash ray
