package pairs;

parcelable Point {
    const int DIMENSIONS = 2;
    int x;
    int y = 5;
    String name = "nowhere";
    @nullable String note;
    double[] weights = {0.5, 1.5};
}
