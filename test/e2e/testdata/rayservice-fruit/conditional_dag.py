"""The application conditional_dag.serve_dag that samples name: POST ["MUL", 3] answers with the product as an order."""
from ray import serve


@serve.deployment
class Adder:
    def reconfigure(self, config):
        self.increment = config["increment"]

    def apply(self, number):
        return number + self.increment


@serve.deployment
class Multiplier:
    def reconfigure(self, config):
        self.factor = config["factor"]

    def apply(self, number):
        return number * self.factor


@serve.deployment
class Router:
    def __init__(self, **operations):
        self.operations = operations

    async def __call__(self, request):
        operation, number = await request.json()
        return f"{await self.operations[operation].apply.remote(number)} pizzas please!"


serve_dag = Router.bind(ADD=Adder.bind(), MUL=Multiplier.bind())
