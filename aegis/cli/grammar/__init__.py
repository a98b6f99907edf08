"""aegis/cli/grammar"""
