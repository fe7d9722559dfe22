package pairs;

@Backing(type="byte")
enum Colour {
    RED,
    GREEN = 5,
    BLUE,
}
