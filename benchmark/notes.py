"""Reasons for missed goals, shown in results.md."""

SHARED = "the cores were shared with other programs during this run: see the load in the last table"
TRACING = "most of the time is for tracing the recursion in Python; a robot in the cache needs no compilation"
NOTES = {
    "counts": "the target is that of another tree, whose shape is not published. Before regrouping that tree had 5449 and "
              "4996 operations; this one, with eight branches and more geometry in each, has 5876 and 5270, and regrouping "
              "saves the same share of both. A random tree with 5447 and 4963 operations before regrouping has 4865 and 4353 "
              "after it",
    "threads": "arrays of this size exceed the caches, and both threads share the memory bandwidth",
    "batch": "see the table of parts below: products that are not fused, sines and cosines, moves for lack of registers, "
             "transposition of rows to lanes and back, and memory",
    "lost": "a queue of 100 messages lasts a tenth of a second: a process that is suspended for longer loses messages. The "
            "last table contains the losses of the naive node, and the load",
    "laws": "the time is proportional to the duration of the motion, with one interval per 40 ms and three points in each: 60 "
            "waypoints are a minute of motion with 5200 points, which are solved twice, checked three times, and solved on "
            "two coarser grids before",
    "copp": "short motions: COPP uses 1001 points for every duration; on short grids half of our time is Python code between "
            "kernels",
    "copp_duration": "ours keeps 99.9 % of the limits at every instant, COPP keeps 100 % at its grid points only",
    "first": "limits are checked along the whole plan, at four points of each piece and every 20 ms",
    "take_over": "the solved problem is five seconds of motion, or the whole motion if it is not much longer",
    "p99": SHARED,
    "p99.9": "a sleeping thread wakes up as late as shown in the first row of the table of nodes; a round trip includes "
             "several such wake-ups, in two processes and the middleware's threads",
    "ticks": "a busy solver takes one of the two cores; the node, the middleware's threads and the subscriber share the other",
    "cpu": "two thirds of the remaining time are spent in the middleware: its receiving thread, waiting, taking one message "
           "and publishing the results. Most of the possible saving was rclpy's executor",
    "build7": TRACING,
    "build32": TRACING,
}
