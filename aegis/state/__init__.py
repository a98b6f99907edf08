"""aegis/state"""
