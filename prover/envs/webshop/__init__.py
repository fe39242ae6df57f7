"""WebShop: shopping tasks in text, played by a pure Python engine on WebShop's own products or on generated ones."""
