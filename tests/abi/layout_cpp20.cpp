#include "headroom/sdk/host.hpp"
#include "layout.h"

/* What the loader and the SDK take for the size of 1.0. */
#define LAYOUT(type, size) static_assert(headroom::sdk::size_of_1_0<type> == (size), #type " was another size in 1.0");
#define MEMBER(type, member, offset)
#include "layout_1_0.inc"
