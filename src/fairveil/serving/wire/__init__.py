"""What goes through the door, as bytes: plain JSON beside plain arrays, and a closed catalogue of
questions."""
