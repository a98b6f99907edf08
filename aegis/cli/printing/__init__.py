"""aegis/cli/printing"""
