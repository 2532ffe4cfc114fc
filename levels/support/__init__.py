"""What the levels use and no notebook explains. It is written by hand, and knows none of the levels."""
