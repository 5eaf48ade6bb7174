# What an actor has in memory outlives its process and its node only where the actor keeps it elsewhere. This one uses a directory,
# which must be storage that all nodes share if it is to outlive a node.
#   kubectl exec -i HEAD-POD -- python - < checkpoint.py
import json
import os
import pathlib

import ray

ray.init(address="auto", log_to_driver=False)


@ray.remote(num_cpus=0.1, max_restarts=-1, max_task_retries=-1)
class Counter:
    def __init__(self, directory):
        self.file = pathlib.Path(directory) / "counter.json"
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.n = json.loads(self.file.read_text()) if self.file.exists() else 0

    def add(self):
        self.n += 1
        # The new state is there whole, or not at all.
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(self.n))
        os.replace(new, self.file)
        return self.n

    @ray.method(max_task_retries=0)
    def die(self):
        os._exit(1)


counter = Counter.remote("/tmp/checkpoint-" + ray.get_runtime_context().get_job_id())
assert ray.get([counter.add.remote() for _ in range(3)]) == [1, 2, 3]
counter.die.remote()
print("after its process was lost it counts on with", ray.get(counter.add.remote(), timeout=60))
