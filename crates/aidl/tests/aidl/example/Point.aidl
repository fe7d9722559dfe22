package example;

import example.parts.Colour;

/** A point: every construct that a parcelable can have. */
@JavaDerive(toString=true)
parcelable Point {
    const int ORIGIN = 0;

    /** From the left. */
    int x;
    int y = ORIGIN + 5;
    String name = "point";
    @nullable String label;
    @nullable String remark = "none";
    char letter = 'a';
    float[] weights = { 1.0f, -.5f };
    double[3] exact = { 1.0, 2e3, 0.1 };
    boolean visible = true;
    byte[] data = { -1, 2 };
    byte small = -1;
    long wide = 1L << 40;
    Colour colour = Colour.GREEN;
    @nullable(heap=true) Point next;
    Point[] more;
    Tag tag;
    long[40] large;
    int[2][2] table = {{1, 2}, {3, 4}};

    /** A name and a number. */
    @FixedSize @RustDerive(Copy=true, Eq=true)
    parcelable Tag {
        int number;
        char[4] name;
    }
}
