# Runs as user ray inside the finished root file system.
ray --version
python -c 'import ray, ray.serve, ray.dashboard.optional_deps, boto3'
for program in bash wget grep openssl ps pip serve; do command -v "$program"; done
pip download --quiet --no-deps --dest /tmp/check requests==2.26.0 pendulum==2.1.2
rm -r /tmp/check
