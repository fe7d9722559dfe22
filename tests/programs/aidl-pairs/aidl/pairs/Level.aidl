package pairs;

@Backing(type="int")
enum Level {
    LOW = -1,
    HIGH = 1 << 20,
}
