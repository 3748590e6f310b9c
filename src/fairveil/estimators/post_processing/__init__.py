"""The post-processor of decisions and scores: `OddsPostProcessor`, its rows, and its report."""
