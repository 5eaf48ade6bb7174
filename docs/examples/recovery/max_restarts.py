# An actor with max_restarts is started anew when its process or node is lost, and has lost what it had in memory.
#   kubectl exec -i HEAD-POD -- python - < max_restarts.py
import os
import time

import ray

ray.init(address="auto", log_to_driver=False)


class Counter:
    def __init__(self):
        self.n = 0

    def add(self):
        self.n += 1
        return self.n

    def die(self):
        os._exit(1)


Frail = ray.remote(num_cpus=0.1)(Counter)  # max_restarts is 0 by default
Tough = ray.remote(num_cpus=0.1, max_restarts=3)(Counter)


def lives(actor):
    """Loses the process of an actor, and returns what it counts after that, or None when it is dead."""
    actor.die.remote()
    while True:
        try:
            return ray.get(actor.add.remote(), timeout=60)
        except ray.exceptions.ActorUnavailableError:
            time.sleep(1)  # It is being started anew; max_task_retries would have Ray ask again by itself.
        except ray.exceptions.ActorDiedError:
            return None


tough, frail = Tough.remote(), Frail.remote()
for actor in (tough, frail):
    assert ray.get([actor.add.remote() for _ in range(3)]) == [1, 2, 3]
print("with max_restarts=3 it lives again, and counts from", lives(tough))
print("without it is dead:", lives(frail) is None)
