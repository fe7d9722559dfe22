package pairs;

import pairs.Colour;

parcelable Outer {
    parcelable Inner {
        long number = 1 << 10;
        Colour colour = Colour.GREEN;
    }
    enum Kind {
        ONE = 1,
        TWO,
    }
    Inner inner;
    Kind kind = Kind.TWO;
    Inner[] more;
}
