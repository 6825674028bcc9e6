//! A datasource in Rust: `x` is the sine of examples/c_source, a phase per sample, and `y` the same a quarter of a period
//! later, which a linear model can learn. `headroom plugins build examples/rust_source`
#![deny(unsafe_code)]

use headroom::{Datasource, Field, Host, Opt, Options, Reader, Result, Sample};

const POINTS: usize = 16;

struct Sine {
    samples: u64,
}

struct SineReader;

impl Datasource for Sine {
    type Reader = SineReader;

    fn options() -> Vec<Opt> {
        vec![Opt::i64("samples").default(64).min(1).max(1_000_000).help("samples in all")]
    }

    fn open(_host: &Host, options: &Options) -> Result<Self> {
        Ok(Sine { samples: options.i64("samples")? as u64 })
    }

    fn fields(&self) -> Vec<Field> {
        vec![Field::f32("x", &[POINTS]).axes(&["time"]).unit("V").sample_rate_hz(16.0), Field::f32("y", &[1]).unit("V")]
    }

    fn length(&self, _split: u32) -> u64 {
        self.samples
    }

    // Nothing is drawn from a sample's key.
    fn augments(&self) -> bool {
        false
    }

    fn reader(&self) -> Result<SineReader> {
        Ok(SineReader)
    }
}

impl Reader<Sine> for SineReader {
    fn read(&mut self, _source: &Sine, sample: &mut Sample) -> Result<()> {
        let phase = sample.index() as f64 / 64.0;
        let sine = |t: usize| (6.283185307179586 * (t as f64 / POINTS as f64 + phase)).sin() as f32;
        for (t, value) in sample.slot::<f32>(0)?.iter_mut().enumerate() {
            *value = sine(t);
        }
        sample.slot::<f32>(1)?.fill(sine(POINTS + POINTS / 4));
        Ok(())
    }
}

headroom::headroom_datasource!(Sine);
