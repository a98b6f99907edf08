"""The checker: evidence of a load, and the rules that compare it with the promises."""
