# A detached actor outlives the program that made it. With the state of the GCS in Redis or on a volume it also outlives the head:
# run this, delete the head's Pod, wait until the RayCluster is ready, and run it again. Without, it counts from 1 again.
#   kubectl exec -i HEAD-POD -- python - < detached_actor.py
import ray

ray.init(address="auto", namespace="recovery", log_to_driver=False)


@ray.remote(num_cpus=0.1)
class Counter:
    def __init__(self):
        self.n = 0

    def add(self):
        self.n += 1
        return self.n


# On a worker: what is on the head is lost with the head.
counter = Counter.options(name="counter", lifetime="detached", get_if_exists=True).remote()
print("the actor was asked", ray.get(counter.add.remote(), timeout=60), "times")
