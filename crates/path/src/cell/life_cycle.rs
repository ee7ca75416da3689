//! A device without data: it becomes inactive or idle and must become connected again, and while it is connected, it does
//! not listen all the time (DRX).

use std::time::Duration;

use airpace_core::{Direction, Rng, Time};

use super::config::{DrxConfig, RrcConfig};

/// RRC state and DRX of one device.
#[derive(Debug)]
pub(super) struct LifeCycle {
    rrc: RrcConfig,
    drx: DrxConfig,
    /// Time of the last data in any direction.
    last_data: Time,
    /// Duration of a promotion to the connected state that has not started; `None` if there is none.
    promotion: Option<Duration>,
    /// Time until which the device listens because of a grant.
    listens_until: Time,
    /// Offset of the device's DRX cycles in ms.
    offset_ms: u64,
    rng: Rng,
}

impl LifeCycle {
    pub(super) fn new(rrc: &RrcConfig, drx: &DrxConfig, mut rng: Rng) -> LifeCycle {
        let offset_ms = drx.cycle_ms.map_or(0, |cycle_ms| rng.below(cycle_ms.into()));
        LifeCycle {
            rrc: rrc.clone(),
            drx: drx.clone(),
            last_data: Time::ZERO,
            promotion: None,
            listens_until: Time::ZERO,
            offset_ms,
            rng,
        }
    }

    /// Processes data of this direction that waits at `now`. If the device is not connected, it starts to become connected.
    pub(super) fn on_data(&mut self, now: Time, direction: Direction) {
        if let Some((min_ms, max_ms)) = self.promotion_ms(now) {
            let mut ms = self.rng.range(min_ms, max_ms);
            if direction == Direction::Downlink {
                ms += self.rng.range(0.0, self.rrc.paging_cycle_ms.into());
            }
            self.promotion = Some(Duration::from_millis(libm::ceil(ms) as u64));
        }
        self.last_data = now;
    }

    /// Limits of the time in which the device becomes connected, in ms; `None` if it is connected.
    fn promotion_ms(&self, now: Time) -> Option<(f64, f64)> {
        let quiet_s = (now - self.last_data).as_secs_f64();
        let is_after = |limit_s: Option<f64>| limit_s.is_some_and(|limit_s| quiet_s >= limit_s);
        if is_after(self.rrc.idle_after_s) {
            Some((self.rrc.setup_min_ms, self.rrc.setup_max_ms))
        } else if is_after(self.rrc.inactive_after_s) {
            Some((self.rrc.resume_min_ms, self.rrc.resume_max_ms))
        } else {
            None
        }
    }

    /// The duration of a promotion that starts now.
    pub(super) fn take_promotion(&mut self) -> Option<Duration> {
        self.promotion.take()
    }

    /// Processes a grant of new data at `now`.
    pub(super) fn on_grant(&mut self, now: Time) {
        self.listens_until = now + Duration::from_millis(self.drx.inactivity_ms.into());
    }

    /// Whether a connected device listens at `now`.
    pub(super) fn is_listening(&self, now: Time) -> bool {
        let Some(cycle_ms) = self.drx.cycle_ms else { return true };
        let place_ms = (now.as_millis() + self.offset_ms) % u64::from(cycle_ms);
        place_ms < self.drx.on_ms.into() || now < self.listens_until
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::Streams;

    use super::*;

    fn life(rrc: RrcConfig, drx: DrxConfig) -> LifeCycle {
        LifeCycle::new(&rrc, &drx, Streams::new(3).stream("life"))
    }

    #[test]
    fn a_device_needs_longer_the_longer_it_was_quiet() {
        let rrc = RrcConfig {
            inactive_after_s: Some(1.0),
            idle_after_s: Some(10.0),
            paging_cycle_ms: 0,
            ..RrcConfig::default()
        };
        let mut life = life(rrc, DrxConfig::default());
        let mut promotion_ms = |ms: u64| {
            life.on_data(Time::from_millis(ms), Direction::Downlink);
            life.take_promotion().map(|promotion| promotion.as_millis())
        };
        assert_eq!(promotion_ms(999), None);
        let resume = promotion_ms(2_000).expect("inactive after 1 s");
        assert!((10..=20).contains(&resume), "{resume}");
        assert_eq!(promotion_ms(2_100), None);
        let setup = promotion_ms(12_200).expect("idle after 10 s");
        assert!((50..=100).contains(&setup), "{setup}");
    }

    #[test]
    fn downlink_data_waits_for_paging() {
        let rrc = RrcConfig { idle_after_s: Some(5.0), ..RrcConfig::default() };
        let mut life = life(rrc, DrxConfig::default());
        let longest = |direction, life: &mut LifeCycle, from_s: u64| {
            let promotions = (0..200).filter_map(|number| {
                life.on_data(Time::from_secs(from_s + 6 * number), direction);
                life.take_promotion()
            });
            promotions.map(|promotion| promotion.as_millis()).max()
        };
        let up = longest(Direction::Uplink, &mut life, 6).unwrap();
        let down = longest(Direction::Downlink, &mut life, 2_000).unwrap();
        assert!(up <= 100 && (300..=420).contains(&down), "{up}, {down}");
    }

    #[test]
    fn a_device_listens_in_each_cycle_and_after_a_grant() {
        let drx = DrxConfig { cycle_ms: Some(40), on_ms: 10, inactivity_ms: 20 };
        let mut life = life(RrcConfig::default(), drx);
        let heard = |life: &LifeCycle| {
            (400..480).filter(|&ms| life.is_listening(Time::from_millis(ms))).collect::<Vec<u64>>()
        };
        assert_eq!(heard(&life).len(), 20);
        let asleep = (400..440).find(|&ms| !life.is_listening(Time::from_millis(ms))).unwrap();
        life.on_grant(Time::from_millis(asleep));
        assert!(heard(&life).len() > 30, "{:?}", heard(&life));
    }
}
