package example.parts;

/** A colour. */
enum Colour { RED, GREEN = 5, BLUE }
