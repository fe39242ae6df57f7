"""WebShop: shopping tasks in text, played by a pure Python engine on WebShop's own products or on generated ones."""

from prover.envs.webshop.env import WebShopEnv
from prover.envs.webshop.goal import Goal
from prover.envs.webshop.product import Product
from prover.envs.webshop.reward import Reward
from prover.envs.webshop.session import Session
from prover.envs.webshop.shop import Shop

__all__ = ["Goal", "Product", "Reward", "Session", "Shop", "WebShopEnv"]
