package pairs;

@Backing(type="long")
enum Big {
    NONE = 0,
    HUGE = 0x7fffffffffffffff,
}
