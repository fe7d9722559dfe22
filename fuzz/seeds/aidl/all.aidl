/*
 * A licence, which is no documentation.
 */


/**
 * An echo: every construct that an interface can have.
 *
 *     Indented, with ``` fences.
 */
@VintfStability
interface IEcho {
    /** The longest text. */
    const int LIMIT = (1 << 10) - 1;
    const String GREETING = "hello, " + "world";
    const byte LAST = 0xffu8;
    const int[] PRIMES = { 2, 3, 5, };
    const byte[2] BYTES = {1, -1};

    /** Returns the text. */
    String echo(@utf8InCpp String text);
    oneway void note(in String text);
    /** Fills the array up to its length, and moves the point. */
    boolean fill(int size, out int[] values, inout Point point, out Point copy);
    @nullable String[] words(in @nullable List<String> words, in @nullable Shape shape);
    byte[] bytes(in byte[] bytes, in byte[2][3] table);
    int[2] pair(in long wide, in double exact, in float rough, in char letter, in byte small);
    void paint(in Colour colour, in Colour[] more, Level level);
    ParcelFileDescriptor file(in ParcelFileDescriptor one, in FileDescriptor other, in @nullable ParcelFileDescriptor none);
    IBinder object(IBinder object, @nullable IBinder none, in @nullable IBinder[] several);
    @nullable IListener follow(IListener listener, in Point.Tag tag);
    void dump(in int type, in IEcho self);
    Owned own(in Owned owned);

    /** How loud. */
    @Backing(type="int")
    enum Level {
        QUIET,
        /** As people speak. */
        NORMAL = 0x10,
        LOUD,
        ALL = QUIET | LOUD,
    }

    oneway interface IListener {
        void onEcho(String text);
    }
}


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

/** Fields that a parcelable has no default for. */
@Descriptor(value="example.Old")
parcelable Owned {
    IBinder object;
    @nullable IBinder none;
    IEcho echo;
    ParcelFileDescriptor file;
    @nullable ParcelFileDescriptor[] files;
}

/** A colour. */
enum Colour { RED, GREEN = 5, BLUE }


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
