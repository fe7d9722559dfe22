package example.parts;

import example.Point;

/** A shape. */
union Shape {
    const int SIDES = 4;
    float circle = 1.0f;
    /** Its corners. */
    Point[] polygon;
    String name;
    Colour colour;
    @nullable IBinder someObject;
}
