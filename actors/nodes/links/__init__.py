"""actors/nodes/links"""
