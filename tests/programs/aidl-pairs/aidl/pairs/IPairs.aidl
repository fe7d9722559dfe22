package pairs;

import pairs.Big;
import pairs.Colour;
import pairs.ICallback;
import pairs.Level;
import pairs.Outer;
import pairs.Point;
import pairs.Shape;
import pairs.Tree;

/** Every construct of AIDL that both sides take. Methods that begin with "same" return what they get. */
interface IPairs {
    const int LIMIT = (1 << 4) | 0x3;
    const String NAME = "pairs" + " of programs";

    boolean sameBoolean(boolean value);
    byte sameByte(byte value);
    char sameChar(char value);
    int sameInt(int value);
    long sameLong(long value);
    float sameFloat(float value);
    double sameDouble(double value);
    String sameString(String value);
    @utf8InCpp String sameUtf8(@utf8InCpp String value);

    boolean[] sameBooleans(in boolean[] value);
    byte[] sameBytes(in byte[] value);
    char[] sameChars(in char[] value);
    int[] sameInts(in int[] value);
    long[] sameLongs(in long[] value);
    float[] sameFloats(in float[] value);
    double[] sameDoubles(in double[] value);
    String[] sameStrings(in String[] value);
    List<String> sameList(in List<String> value);
    int[2][3] sameFixed(in int[2][3] value);

    @nullable String nullableString(@nullable String value);
    @nullable int[] nullableInts(in @nullable int[] value);
    @nullable String[] nullableStrings(in @nullable String[] value);
    @nullable Point nullablePoint(in @nullable Point value);
    @nullable Point[] nullablePoints(in @nullable Point[] value);
    @nullable IBinder nullableBinder(@nullable IBinder value);

    Colour sameColour(Colour value);
    Level sameLevel(Level value);
    Big sameBig(Big value);
    Colour[] sameColours(in Colour[] value);
    Level[] sameLevels(in Level[] value);
    Big[] sameBigs(in Big[] value);

    Point samePoint(in Point value);
    Point[] samePoints(in Point[] value);
    Shape sameShape(in Shape value);
    Shape[] sameShapes(in Shape[] value);
    Tree sameTree(in Tree value);
    Outer.Inner sameInner(in Outer.Inner value);
    Outer sameOuter(in Outer value);

    /** Fills the numbers, moves the point, and names the other. Returns how many numbers there were. */
    int fill(out int[] numbers, inout Point point, out Point named, int by, inout String[] words);

    /** Fills the list, which does not bring its length as an array does. */
    int list(out List<String> words, int count);

    IBinder sameBinder(IBinder value);
    /** Calls back with 1 and 2, and returns the sum of the answers. */
    int callTwice(ICallback callback);
    @nullable ICallback keep(@nullable ICallback callback);

    /** Reads the file to its end. */
    String readAll(in ParcelFileDescriptor file);
    /** A pipe from which one reads the text. */
    ParcelFileDescriptor written(String text);

    /** Fails in one of several ways. */
    void fail(int way);

    oneway void note(String text);
    String[] notes();
    oneway void die();
}
