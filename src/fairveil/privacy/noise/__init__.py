"""Where randomness comes from: named streams of one root, and exact samplers of discrete noise."""
