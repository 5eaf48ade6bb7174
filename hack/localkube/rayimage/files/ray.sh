# Runs as root inside the new root file system: Ray and what it depends on, at the
# versions and hashes in ray.txt. Compiling waits for finish.sh.
pip install --no-compile --require-hashes --only-binary=:all: -r /build/ray.txt
pip check
# Java workers need a Java runtime, which the image does not have.
rm -rf /usr/local/lib/python3*/dist-packages/ray/jars
# For debugging the dashboard's own scripts.
rm -f /usr/local/lib/python3*/dist-packages/ray/dashboard/client/build/static/*/*.map
