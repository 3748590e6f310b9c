"""The privacy statement as a document that anybody can check: what it says, the rule by which its
prices are recomputed, signatures, and what other libraries spent."""
