import os
import sys
from urllib.parse import urlsplit

from ray._private.gcs_utils import cleanup_redis_storage

address = os.environ["RAY_REDIS_ADDRESS"].split(",")[0].strip()
url = urlsplit(address if "://" in address else "redis://" + address)
login = {}
if os.environ.get("REDIS_USERNAME"):
    login["username"] = os.environ["REDIS_USERNAME"]
done = cleanup_redis_storage(
    host=url.hostname,
    port=url.port or 6379,
    password=os.environ.get("REDIS_PASSWORD") or url.password or "",
    use_ssl=url.scheme == "rediss",
    storage_namespace=os.environ["RAY_external_storage_namespace"],
    **login,
)
sys.exit(0 if done else 1)
