package pairs;

parcelable Tree {
    int value;
    @nullable(heap=true) Tree next;
}
