/* The header by itself, nothing before it. */
#include "headroom/abi.h"
#include "headroom/backward.h"
#include "headroom/capabilities.h"
#include "headroom/classes.h"
#include "headroom/convert.h"
#include "headroom/costs.h"
#include "headroom/infer.h"
#include "headroom/inputs.h"
#include "headroom/lists.h"
#include "headroom/model_files.h"
#include "headroom/optimizer.h"
#include "headroom/positions.h"
#include "headroom/predict.h"
#include "headroom/random.h"
#include "headroom/readers.h"

extern hr_status header_alone(const hr_host* host);
hr_status header_alone(const hr_host* host) { return HR_HAS(host, get_service) ? HR_OK : HR_UNSUPPORTED; }
