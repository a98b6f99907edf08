def total(prices):
    return sum(prices)


def discount(price, percent):
    return price * (100 - percent) / 100
