"""The application fruit.deployment_graph that samples name: POST ["MANGO", 2] answers with the price of two mangos."""
from ray import serve


class Stand:
    def reconfigure(self, config):
        self.price = config["price"]

    def cost(self, amount):
        return amount * self.price


MangoStand = serve.deployment(name="MangoStand")(Stand)
OrangeStand = serve.deployment(name="OrangeStand")(Stand)
PearStand = serve.deployment(name="PearStand")(Stand)


@serve.deployment
class FruitMarket:
    def __init__(self, **stands):
        self.stands = stands

    async def __call__(self, request):
        fruit, amount = await request.json()
        return await self.stands[fruit].cost.remote(amount)


deployment_graph = FruitMarket.bind(MANGO=MangoStand.bind(), ORANGE=OrangeStand.bind(), PEAR=PearStand.bind())
