"""Why a goal is missed, where it is: shown in results.md beside the goals that are."""

SHARED = "the cores were shared with other work during this run: see the load in the last table"
TRACING = "tracing the recursion in Python is most of it; a robot that was compiled before skips the rest"
NOTES = {
    "counts": "the figure is of another tree, whose shape is not written down. Before regrouping that one took 5449 and 4996; "
              "this one, with eight branches and more geometry at each, takes 5876 and 5270, and regrouping saves as large a "
              "share of both. A random tree that starts at 5447 and 4963 ends at 4865 and 4353",
    "threads": "arrays of this size come from memory, which both threads share",
    "batch": "by its parts, below: products that are not fused, sines and cosines, moves where registers are too few, rows "
             "turned into lanes and back, and memory",
    "lost": "a queue of 100 messages is a tenth of a second: a process that is not let run for longer loses some. What the "
            "naive node loses, and the load, stand in the last table",
    "laws": "time goes with the length of the motion, an interval for each 40 ms, three points in each: 60 points of these "
            "take a minute of motion, 5200 points, which are solved for twice, checked three times in between, and on two "
            "coarser grids before",
    "copp": "short motions: COPP has 1001 points for every length; on short grids half of our time is Python between "
            "kernels",
    "copp_duration": "ours keeps to 99.9 % of the limits at every instant, COPP to all of them at its grid points only",
    "first": "limits are checked along the whole plan, at four points of each piece and every 20 ms",
    "take_over": "what is solved for is five seconds of motion, or all of one that is not much longer",
    "p99": SHARED,
    "p99.9": "who only sleeps wakes up as late as the first row of the table of nodes says; a round trip has several such "
             "wakes, in two processes and the middleware's threads",
    "ticks": "of two cores a busy solver takes one; the node, the middleware's threads and who listens share the other",
    "cpu": "of what is left, two thirds are the middleware's: its receiving thread, the wait, taking one message and sending "
           "the answers. rclpy's executor was most of what could be saved",
    "build7": TRACING,
    "build32": TRACING,
}
