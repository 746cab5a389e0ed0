/* C ABI of an exported robot. `rnea export --shared` writes a shared library of it, whose only symbol is rnea_robot().
 *
 * The ABI is frozen: fields are only appended, and a change of a field or of its meaning raises RNEA_ROBOT_ABI. A reader checks
 * `abi == RNEA_ROBOT_ABI` and `size >= sizeof(rnea_robot_api)` of the header it includes, and that the functions it needs are not
 * NULL.
 *
 * Robots are trees on a held base, and robots with closed loops on a held base, with any springs. Arrays are in the order of
 * joint_names (n numbers), positions q in that of tree_joint_names (n_q numbers). Without loops both are the same. With loops q
 * is a closed pose of all joints of the tree: set the joints `active` of the last pose, start_pose at first, and call close_step
 * until gap is rounding, as a rule twice.
 *
 * Units are SI: q [rad, m], qd, qdd, qddd its time derivatives, tau [N m, N], tau_rate [N m/s, N/s]. A torque is what the
 * actuator exerts, positive along the URDF's axis, gravity, friction and offsets included. Matrices are row by row. Unknown
 * limits are NaN.
 *
 * payload is ten numbers from payload_parameters for what payload_link carries; NULL: nothing. payload_link is NULL where the
 * library was exported without --payload; payload is then ignored.
 *
 * No function allocates, locks, calls the system, keeps a state or needs a workspace. Inputs and outputs must not overlap, no
 * output may be NULL. Numbers that are not finite go in and come out; nothing else is checked. All may be called from any
 * thread. An indicator above 1 means that the result is not reliable, because the loops of q are open or the pose is singular; it
 * is 0 for robots without loops. */
#ifndef RNEA_ROBOT_API_H
#define RNEA_ROBOT_API_H

#include <stdint.h>

#define RNEA_ROBOT_ABI 1
#define RNEA_ROBOT_SYMBOL "rnea_robot"

#ifdef __cplusplus
extern "C" {
#endif

/* rnea_robot_api.joint_types */
enum { RNEA_REVOLUTE = 0, RNEA_CONTINUOUS = 1, RNEA_PRISMATIC = 2 };
/* rnea_effort.contains: what an effort value of the robot contains */
enum { RNEA_TOTAL = 0, RNEA_WITHOUT_GRAVITY = 1, RNEA_WITHOUT_GRAVITY_AND_FRICTION = 2 };
/* rnea_effort.quantity */
enum { RNEA_JOINT_TORQUE = 0, RNEA_MOTOR_TORQUE = 1, RNEA_CURRENT = 2, RNEA_UNKNOWN_QUANTITY = 3 };

/* Effort convention: effort = (tau - added) / per_unit, where added is gravity, gravity and friction, or nothing. */
typedef struct rnea_effort {
    int32_t contains;
    int32_t quantity;
    const double *per_unit; /* n: joint torque per unit of the effort, with sign */
} rnea_effort;

/* A link named by --link. Poses and Jacobians are those of the origin of its URDF frame, in the root link's frame. */
typedef struct rnea_link {
    const char *name;
    void (*pose)(const double *q, double *rotation, double *position);          /* 9, 3 */
    void (*jacobian)(const double *q, double *J);                               /* 6 x n_q, linear before angular */
    void (*jacobian_rate)(const double *q, const double *qd_tree, double *J_rate); /* 6 x n_q, from n_q velocities */
} rnea_link;

typedef struct rnea_robot_api {
    uint32_t abi;  /* RNEA_ROBOT_ABI */
    uint32_t size; /* sizeof(rnea_robot_api) of the exporter */
    const char *robot_name;
    const char *model_id; /* fingerprint of every name and number of the model */
    const char *exporter; /* name and version of the program that wrote the library */
    const char *payload_link; /* NULL: payload is no argument */
    const char *root_link;
    int32_t n;          /* joints */
    int32_t n_q;        /* numbers of q: all joints of the tree where the robot has loops, else n */
    int32_t link_count;
    int32_t has_loops;
    const char *const *joint_names;      /* n */
    const char *const *tree_joint_names; /* n_q */
    const int32_t *joint_types;          /* n */
    const int32_t *active;               /* n: number of each joint among tree_joint_names */
    const double *start_pose;            /* n_q: zeros, or a pose in which the loops are closed */
    const double *gravity_vector;        /* 3: acceleration of gravity in the root link's frame [m/s^2] */
    const rnea_link *links;              /* link_count */

    /* Limits, n numbers each; effort and effort_rate of the whole torque, commanded_effort_rate of its rate without what the
     * robot's controller adds. */
    const double *lower, *upper, *velocity, *acceleration, *jerk, *effort, *effort_rate, *commanded_effort_rate;
    rnea_effort commanded, measured;

    /* Functions; NULL where the robot has none, or --only left it out. */
    void (*payload_parameters)(double mass, const double *com, const double *inertia, double *payload); /* mass [kg], com in
        payload_link's frame [m], inertia about com along the link's axes xx xy xz yy yz zz [kg m^2] -> 10 */
    void (*torque_and_rate)(const double *q, const double *qd, const double *qdd, const double *qddd, const double *payload,
                            double *tau, double *tau_rate, double *indicator);
    void (*inverse_dynamics)(const double *q, const double *qd, const double *qdd, const double *payload, double *tau);
    void (*gravity)(const double *q, const double *payload, double *tau);
    void (*gravity_and_rate)(const double *q, const double *qd, const double *payload, double *tau, double *tau_rate);
    void (*bias)(const double *q, const double *qd, const double *payload, double *tau); /* inverse dynamics at qdd = 0 */
    void (*friction)(const double *qd, const double *qdd, double *tau, double *tau_rate); /* and offsets; without the part by
        the load */
    void (*mass_matrix)(const double *q, const double *payload, double *M); /* n x n */
    void (*forward_dynamics)(const double *q, const double *qd, const double *tau, const double *payload, double *qdd);
    void (*sensitivities)(const double *q, const double *qd, const double *qdd, const double *payload, double *dtau_dq,
                          double *dtau_dqd, double *dtau_dqdd); /* n x n each */
    void (*rate_sensitivities)(const double *q, const double *qd, const double *qdd, const double *qddd, const double *payload,
                               double *drate_dq, double *drate_dqd, double *drate_dqdd, double *drate_dqddd); /* n x n each */
    void (*close_step)(const double *q, double *q_closed, double *gap, double *indicator); /* one step of Newton's method; gap
        [m, rad]: how far the loops of q were open. NULL without loops. */
    void (*tree_motion)(const double *q, const double *qd, const double *qdd, const double *qddd, double *qd_tree,
                        double *qdd_tree, double *qddd_tree); /* n_q numbers each. NULL without loops. */
} rnea_robot_api;

/* The exported robot: constant, valid while the library is loaded. */
const rnea_robot_api *rnea_robot(void);

#ifdef __cplusplus
}
#endif

#endif
