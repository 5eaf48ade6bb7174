# Runs as root inside the new root file system: wheels for the runtime
# environments that Ray sets up with pip at run time, where no network is.
# pendulum comes as source only, so its build tools are installed to one side.
pip install --no-compile --require-hashes --only-binary=:all: --target /build/tools -r /build/build-tools.txt
PYTHONPATH=/build/tools pip wheel --require-hashes --no-deps --no-build-isolation \
  --only-binary=:all: --no-binary=pendulum --wheel-dir /opt/wheelhouse -r /build/wheelhouse.txt
