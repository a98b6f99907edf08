"""actors/nodes/workers"""
