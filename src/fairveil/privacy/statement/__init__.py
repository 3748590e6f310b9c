"""What is published: the privacy statement in words and as a document, its checks, its
signature."""
