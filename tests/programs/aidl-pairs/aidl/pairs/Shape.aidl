package pairs;

import pairs.Point;

union Shape {
    int side = 3;
    String name;
    Point centre;
    int[] corners;
}
