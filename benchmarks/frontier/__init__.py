"""What `frontiers.py` is made of: splits and their measurements, published curves, comparisons at
equal gap."""
