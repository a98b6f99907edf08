from cart import discount, total


def test_total():
    assert total([2, 3]) == 5


def test_discount():
    assert discount(200, 10) == 180
