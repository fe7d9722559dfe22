/*
 * A licence, which is no documentation.
 */
package example;

import example.parts.Colour;
import example.parts.Shape;

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
    void copy(in ParcelFileDescriptor[] files, out ParcelFileDescriptor[] copies, inout IEcho[] echoes);
    /** Splits the text at blanks, and adds the words' lengths to those behind. */
    void split(String text, out List<String> words, out List<IEcho> none, inout int[] lengths);

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
