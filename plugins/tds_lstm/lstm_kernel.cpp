#include "lstm_kernel.hpp"

#include "headroom/sdk/vector_math.hpp"

namespace headroom {
namespace {

template <class T>
struct Forward {
  static HEADROOM_KERNEL_BODY void run(const CellForward<T>* cells) {
    const int64_t hidden = cells->hidden;
    for (int64_t row = 0; row < cells->rows; ++row) {
      T* in = cells->gates + row * 4 * hidden;
      T* forget = in + hidden;
      T* candidate = in + 2 * hidden;
      T* out = in + 3 * hidden;
      const T* before = cells->cell_before + row * hidden;
      T* cell = cells->cell + row * hidden;
      T* output = cells->output + row * hidden;
#pragma GCC ivdep  // what is written may be what was read, at the same place
      for (int64_t i = 0; i < hidden; ++i) {
        in[i] = sdk::vector_logistic(in[i]);
        forget[i] = sdk::vector_logistic(forget[i]);
        candidate[i] = sdk::vector_tanh(candidate[i]);
        out[i] = sdk::vector_logistic(out[i]);
        cell[i] = forget[i] * before[i] + in[i] * candidate[i];
        output[i] = out[i] * sdk::vector_tanh(cell[i]);
      }
    }
  }
};

template <class T>
struct Backward {
  static HEADROOM_KERNEL_BODY void run(const CellBackward<T>* cells) {
    const int64_t hidden = cells->hidden;
    for (int64_t row = 0; row < cells->rows; ++row) {
      T* in = cells->gates + row * 4 * hidden;
      T* forget = in + hidden;
      T* candidate = in + 2 * hidden;
      T* out = in + 3 * hidden;
      const T* before = cells->cell_before + row * hidden;
      const T* cell = cells->cell + row * hidden;
      const T* to_output = cells->to_output + row * hidden;
      T* to_cell = cells->to_cell + row * hidden;
#pragma GCC ivdep  // what is written may be what was read, at the same place
      for (int64_t i = 0; i < hidden; ++i) {
        const T i_gate = in[i], f_gate = forget[i], g_gate = candidate[i], o_gate = out[i];
        const T shown = sdk::vector_tanh(cell[i]);
        const T to = to_cell[i] + to_output[i] * o_gate * (T(1) - shown * shown);
        in[i] = to * g_gate * i_gate * (T(1) - i_gate);
        forget[i] = to * before[i] * f_gate * (T(1) - f_gate);
        candidate[i] = to * i_gate * (T(1) - g_gate * g_gate);
        out[i] = to_output[i] * shown * o_gate * (T(1) - o_gate);
        to_cell[i] = to * f_gate;
      }
    }
  }
};

}  // namespace

void run_cells(const CellForward<float>& cells) { sdk::run_kernel<Forward<float>>(&cells); }
void run_cells(const CellForward<double>& cells) { sdk::run_kernel<Forward<double>>(&cells); }
void run_cells(const CellBackward<float>& cells) { sdk::run_kernel<Backward<float>>(&cells); }
void run_cells(const CellBackward<double>& cells) { sdk::run_kernel<Backward<double>>(&cells); }

}  // namespace headroom
