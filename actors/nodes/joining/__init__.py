"""actors/nodes/joining"""
