"""tests/chaos/machine"""
