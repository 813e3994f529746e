"""Reading and writing the formats that harnesses keep their configuration in."""
