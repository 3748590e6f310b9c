"""What is asked of prices: the least noise within a promise, what each group's people spend, one
release after a plan, data sets that are several neighbours apart."""
