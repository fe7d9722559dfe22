package pairs;

interface ICallback {
    int answer(int number) = 10;
    String name() = 3;
}
